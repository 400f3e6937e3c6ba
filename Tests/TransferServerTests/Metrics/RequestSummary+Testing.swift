import HTTPSemantics

@testable import TransferServer

extension RequestSummary {
    /// The summary of a request with these values; by default the request is successful.
    static func testing(
        _ method: String = "GET", route: String = "/files", status: Status? = 200, code: String? = nil,
        received: Int64 = 0, sent: Int64 = 0, interruption: String? = nil, progress: UploadProgress = UploadProgress(),
        explanation: UploadExplanation? = nil, check: CheckReport? = nil, countedReceived: Int64 = 0
    ) -> RequestSummary {
        RequestSummary(
            id: RequestID(), method: method, target: "/files/x", status: status, code: code, received: received,
            sent: sent, nanoseconds: 1_000_000, interruption: interruption, origin: RequestOrigin(client: "127.0.0.1"),
            principal: "anonymous",
            route: route, upload: nil, offset: nil, progress: progress, explanation: explanation,
            forwarding: nil, check: check, countedReceived: countedReceived)
    }
}
