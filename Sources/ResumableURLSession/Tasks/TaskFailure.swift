import Foundation

/// A reason for the failure of a task that does not come from its transfer. It is the underlying error of a
/// `TransferError`.
enum TaskFailure: Error {
    /// The delegate has canceled a challenge.
    case challengeCanceled
    /// A protocol class of the configuration handles the request.
    case protocolClass

    /// The code of the task's error.
    var urlErrorCode: Int {
        switch self {
        case .challengeCanceled: URLError.Code.cancelled.rawValue
        case .protocolClass: URLError.Code.unsupportedURL.rawValue
        }
    }
}
