import FoundationNetworking

/// A delegate that hears of interim responses, the 104 of uploads among them.
///
/// On Apple's platforms the method belongs to `URLSessionTaskDelegate`, of which this is another name there. Here a
/// delegate has to name this protocol, for FoundationNetworking's does not have the method.
public protocol URLSessionInformationalResponseDelegate: URLSessionTaskDelegate {
    /// An interim response (status 100 to 199) has come. Called on the delegate queue.
    func urlSession(
        _ session: URLSession, task: URLSessionTask, didReceiveInformationalResponse response: HTTPURLResponse)
}
