import HTTPSemantics
import ResumableUpload
import UploadStorage

/// Data about one request for log, metrics and explanations. Used only by the thread of the connection.
final class RequestAccount {
    /// The route label of the metrics; see ``RequestPlace/label``.
    var route = RequestPlace.nowhere.label
    /// The upload of the request.
    var upload: UploadID?
    /// Bytes of that upload that are known to be durable.
    var offset: Int64?
    /// `nil` if the request has no content for an upload or a target.
    var explanation: UploadExplanation?
    /// Whether the response must have the explanation.
    var wantsExplanation = false
    var progress = UploadProgress()
    /// The bytes of content that the metrics have already counted.
    var countedReceived: Int64 = 0

    /// Starts the account of a request whose head is known.
    func begin(_ head: RequestHead) {
        if [.put, .post, .patch].contains(head.method) { explanation = UploadExplanation() }
        wantsExplanation = head.fields.uploadBoolean(ServerFieldName.explain) == true
    }
}
