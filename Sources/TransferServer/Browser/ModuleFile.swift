import BrowserAssets
import Digests
import HTTPSemantics
import SystemCalls

/// The JavaScript client or its types, which pages of every origin may load without a token.
///
/// The URLs contain the version, so the content of a URL never changes.
struct ModuleFile: Sendable {
    private let content: [UInt8]
    private let mediaType: String
    private let entityTag: EntityTag?

    private init(_ content: [UInt8], _ mediaType: String) {
        self.content = content
        self.mediaType = mediaType
        var digest = RunningDigest(.sha256)
        content.withUnsafeBytes { digest.update($0) }
        entityTag = EntityTag(opaque: digest.finalized().hexadecimal)
    }

    private static let script = ModuleFile(BrowserAssets.module, "text/javascript; charset=utf-8")
    private static let types = ModuleFile(BrowserAssets.moduleTypes, "application/typescript; charset=utf-8")

    /// The route of a path below the own prefix.
    /// - Returns: `nil` if the path has neither the form `/onward/VERSION/onward.js` nor the form
    ///   `/onward/VERSION/onward.d.ts`.
    static func route(of path: Substring) -> RequestRoute? {
        let parts = path.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 4, parts[0].isEmpty, parts[1] == "onward", !parts[2].isEmpty else { return nil }
        let isCurrent = parts[2] == BrowserAssets.version
        switch parts[3] {
        case "onward.js": return .module(isCurrent ? script : nil)
        case "onward.d.ts": return .module(isCurrent ? types : nil)
        default: return nil
        }
    }

    /// The response to a request for a module.
    /// - Parameter file: `nil` if the URL has another version than that of the server.
    static func response(_ file: ModuleFile?, to request: RequestContext) -> Response {
        // Every origin is allowed, whatever the configuration.
        for name in ["Vary", "Access-Control-Allow-Origin", "Access-Control-Expose-Headers"] {
            request.responseFields.remove(name)
        }
        var response = file?.response(to: request.head) ?? Response(ProblemDetails.otherModuleVersion)
        response.fields.append("Access-Control-Allow-Origin", "*")
        response.fields.append("Cross-Origin-Resource-Policy", "cross-origin")
        return response
    }

    private func response(to request: RequestHead) -> Response {
        guard request.method == .get || request.method == .head else {
            return Response(ProblemDetails.methodNotAllowed, fields: ["Allow": "GET, HEAD"])
        }
        var fields: Fields = [
            "Cache-Control": "public, max-age=31536000, immutable", "X-Content-Type-Options": "nosniff",
        ]
        if let entityTag { fields.append("ETag", entityTag.serialized) }
        let now = HTTPDate(secondsSinceEpoch: SystemClock.realtimeSeconds())
        let current = Validators(entityTag: entityTag, date: now)
        switch Preconditions(fields: request.fields, now: now).evaluate(method: request.method, current: current) {
        case .notModified: return Response(status: 304, fields: fields, content: content)
        case .failed: return Response(ProblemDetails.preconditionFailed)
        case .proceed: break
        }
        fields.append("Content-Type", mediaType)
        return Response(status: 200, fields: fields, content: content)
    }
}

extension ProblemDetails {
    fileprivate static let otherModuleVersion = ProblemDetails(
        status: 404, detail: "This server has only version \(BrowserAssets.version) of the module.", code: "not-found")
}
