import Foundation
import FoundationNetworking
import HTTPSemantics
import ResumableTransfer

extension URLRequest {
    /// The same for a transfer; `nil` without a URL.
    var transferRequest: TransferRequest? {
        guard let url else { return nil }
        let fields = (allHTTPHeaderFields ?? [:]).sorted { $0.key < $1.key }
        return TransferRequest(
            url.absoluteString, method: Method(rawValue: httpMethod ?? "GET"),
            fields: Fields(fields.map { ($0.key, $0.value) }))
    }

    init?(_ request: TransferRequest) {
        guard let url = URL(string: request.uri) else { return nil }
        self.init(url: url)
        httpMethod = request.method.rawValue
        for field in request.fields { addValue(field.value, forHTTPHeaderField: field.name) }
    }
}
