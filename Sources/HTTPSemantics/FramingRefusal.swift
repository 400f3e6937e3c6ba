/// Why a request is refused before anything in it is believed. The connection is to be closed after the response: where
/// the request ends is in doubt.
public struct FramingRefusal: Error, Hashable, Sendable {
    /// 400, 413, 501 or 505.
    public let status: Status
    /// A stable kebab-case word for problem document, log and metric.
    public let code: String
    /// One English sentence for people; it never repeats bytes of the request.
    public let detail: String

    public init(status: Status, code: String, detail: String) {
        self.status = status
        self.code = code
        self.detail = detail
    }
}

extension FramingRefusal {
    static func badRequest(_ code: String, _ detail: String) -> FramingRefusal {
        FramingRefusal(status: .badRequest, code: code, detail: detail)
    }
}
