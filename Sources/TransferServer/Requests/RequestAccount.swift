import HTTPSemantics
import ResumableUpload
import UploadStorage

/// What is learnt of one request while it is served: for the log, the metrics, and whoever asks why. Used by the
/// connection's thread alone.
final class RequestAccount {
    /// The first segments of its URL, or another word of a few that there are.
    var route = RequestPlace.nowhere.label
    /// The upload that it is about.
    var upload: UploadID?
    /// Bytes of that upload that are known to be durable.
    var offset: Int64?
    /// `nil`: the request brings no content for an upload or a target.
    var explanation: UploadExplanation?
    /// Whether its client wants the explanation in the response.
    var wantsExplanation = false
    var progress = UploadProgress()
    /// Bytes of content that the metrics know of already.
    var countedReceived: Int64 = 0

    /// The head is known: nothing is decided about its content yet.
    func begin(_ head: RequestHead) {
        if [.put, .post, .patch].contains(head.method) { explanation = UploadExplanation() }
        wantsExplanation = head.fields.uploadBoolean(ServerFieldName.explain) == true
    }
}
