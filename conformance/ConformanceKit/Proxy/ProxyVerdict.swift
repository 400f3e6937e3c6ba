/// The conclusion from the behavior of a proxy, without I/O: whether uploads work, and which settings they need.
package struct ProxyVerdict: Sendable, Equatable {
    package enum Usability: String, Sendable {
        case usable
        /// Uploads work with settings, or with restrictions.
        case limited
        case unusable
    }

    package private(set) var usability = Usability.usable
    /// The recommended settings of the server and the proxy with their reasons, the most important first.
    package private(set) var settings: [String] = []

    init(_ behavior: ProxyBehavior) {
        verifyBodies(behavior)
        verifyInterim(behavior)
        verifyAborts(behavior)
        verifyAnswers(behavior)
        verifyFields(behavior)
    }

    private mutating func limit(_ setting: String) {
        if usability == .usable { usability = .limited }
        settings.append(setting)
    }

    private mutating func refuse(_ reason: String) {
        usability = .unusable
        settings.append(reason)
    }

    private mutating func verifyBodies(_ seen: ProxyBehavior) {
        if seen.body == .withheld {
            refuse(
                "unusable: the proxy buffers entire bodies, so interrupted uploads never reach the server; disable request "
                    + "buffering (nginx: proxy_request_buffering off)")
        } else if seen.chunkedBody == .withheld {
            limit("bodies without a length are buffered: configure clients to send Content-Length")
        }
        if seen.isOldHTTP {
            limit("the proxy uses HTTP/1.0, which has no 104: configure HTTP/1.1 (nginx: proxy_http_version 1.1)")
        }
        for method in seen.refusedMethods { refuse("unusable: the proxy refuses \(method); allow this method") }
        if let refused = seen.refusedContent {
            let longest = seen.longestContent ?? 0
            limit(
                "the proxy's limit for bodies is between \(longest) and \(refused) bytes: raise the limit (nginx: "
                    + "client_max_body_size 0), or set max-append-size=\(max(1, longest)) in the server")
        }
    }

    private mutating func verifyInterim(_ seen: ProxyBehavior) {
        let off =
            "interim responses: off (in Onward --interim off, or `Onward-Interim: off` set by the proxy), because "
        switch seen.interim {
        case .live?: settings.append("interim responses: on")
        case .limited(let maximum)?:
            limit(
                "interim responses: on, but no more than \(maximum) for one request (Onward limits them for requests from proxies); "
                    + "if the server sends more, turn them off (Onward: `Onward-Interim: off` set by the proxy)")
        case .firstOnly?:
            limit("interim responses: on; only the first one is forwarded, so clients get no progress")
        case .late?:
            limit("interim responses: on or off; they arrive only with the final response, too late to be used")
        case .dropped?:
            limit(
                "interim responses: on or off; none is forwarded, so clients get the upload's URL only in the final response"
            )
        case .treatedAsFinal?: limit(off + "the proxy handles the first 104 as the final response")
        case .fatal(let what)?: limit(off + "after a 104 the upload fails: \(what)")
        case nil: break
        }
    }

    private mutating func verifyAborts(_ seen: ProxyBehavior) {
        if seen.abort == .looksComplete { refuse("unusable: an interrupted body looks complete to the server") }
        if seen.chunkedAbort == .looksComplete {
            limit(
                "require lengths in the server (Onward: --require-length), because an interrupted body without a length looks complete"
            )
        }
        if seen.abort == .hidden || (seen.chunkedAbort == .hidden && seen.abort != .hidden) {
            limit(
                "the server does not detect that a client closed its connection: set an idle timeout in the server")
        }
        if case .seen(_, let missing)? = seen.abort, missing > 0 {
            limit("\(missing) bytes were lost when the client closed its connection: clients have to send them again")
        }
    }

    private mutating func verifyAnswers(_ seen: ProxyBehavior) {
        switch seen.earlyAnswer {
        case .late?:
            limit(
                "errors arrive only after the complete body: limit the content of requests (Onward: --max-append-size)")
        case .lost(let what)?:
            limit("errors during a body are lost (\(what)): limit the content of requests (Onward: --max-append-size)")
        case .passed?, nil: break
        }
    }

    private mutating func verifyFields(_ seen: ProxyBehavior) {
        if !seen.changedFields.isEmpty {
            refuse("unusable: the proxy changes or removes \(seen.changedFields.joined(separator: ", "))")
        }
        if seen.isOriginPassed == false {
            limit(
                "the server cannot determine its public URL: forward Host, or set the URL in the server (Onward: --public-url)"
            )
        }
        if seen.isRangePassed == false {
            limit("Range or If-Range is lost: interrupted downloads restart from the beginning")
        }
    }
}
