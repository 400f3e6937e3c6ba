import HTTPSemantics
import UploadStorage

/// Reports the bytes and unfinished uploads that count toward the limits of the principal; with `?all` those of all
/// principals, and the free space.
struct UsageEndpoint {
    let service: TransferService
    let request: RequestContext
    let identity: Identity

    func response(to query: String?) -> Response {
        guard request.method == .get || request.method == .head else {
            return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": "GET, HEAD"])
        }
        let includesAll = query?.split(separator: "&").contains { $0 == "all" || $0.hasPrefix("all=") } ?? false
        if includesAll, identity.token?.allowsReadingUsage(at: service.routes.usagePath) != true {
            return Response(TokenAuthorizer.withoutAdministration)
        }
        let usage = service.store.currentUsage(of: includesAll ? nil : identity.principal)
        return Response(
            status: 200,
            fields: [
                "Content-Type": "application/json", "Cache-Control": "no-store", "X-Content-Type-Options": "nosniff",
            ],
            content: includesAll ? all(usage) : own(usage))
    }

    private func own(_ usage: [String: Usage]?) -> [UInt8] {
        var bytes = Array("{".utf8)
        append(identity.principal, usage.map { $0[identity.principal] ?? Usage() }, to: &bytes)
        appendLimits(to: &bytes)
        bytes += "}".utf8
        return bytes
    }

    private func all(_ usage: [String: Usage]?) -> [UInt8] {
        var bytes = Array("{\"principals\":".utf8)
        if let usage {
            bytes += "[".utf8
            for (index, principal) in usage.keys.sorted().enumerated() {
                bytes += (index > 0 ? ",{" : "{").utf8
                append(principal, usage[principal], to: &bytes)
                bytes += "}".utf8
            }
            bytes += "]".utf8
        } else {
            bytes += "null".utf8
        }
        appendLimits(to: &bytes)
        let statistics = try? service.store.statistics()
        append([("free", statistics?.freeBytes), ("minFree", statistics?.minFreeBytes)], to: &bytes)
        bytes += "}".utf8
        return bytes
    }

    /// - Parameter usage: `nil` if it is not counted yet.
    private func append(_ principal: String, _ usage: Usage?, to bytes: inout [UInt8]) {
        bytes += "\"principal\":".utf8
        bytes.appendJSON(principal)
        append([("bytes", usage?.bytes), ("uploads", usage.map { Int64($0.uploads) })], to: &bytes)
    }

    private func appendLimits(to bytes: inout [UInt8]) {
        let limits = service.store.configuration
        append(
            [("quota", limits.quotaPerPrincipal), ("maxUploads", limits.maxUploadsPerPrincipal.map { Int64($0) })],
            to: &bytes)
    }

    private func append(_ members: [(name: String, value: Int64?)], to bytes: inout [UInt8]) {
        for (name, value) in members { bytes += ",\"\(name)\":\(value.map { String($0) } ?? "null")".utf8 }
    }
}
