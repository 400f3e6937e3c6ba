/// The conclusion from a proxy's behavior: whether uploads survive it, and which settings they need. Without I/O.
package struct ProxyVerdict: Sendable, Equatable {
    package enum Usability: String, Sendable {
        case usable
        /// With the settings, or with what they cannot mend.
        case limited
        case unusable
    }

    package private(set) var usability = Usability.usable
    /// What to set, in the server or in the proxy, and why, most important first. Never empty.
    package private(set) var settings: [String] = []

    init(_ behavior: ProxyBehavior) {
        verifyBodies(behavior)
        verifyInterim(behavior)
        verifyAborts(behavior)
        verifyAnswers(behavior)
        verifyRemainder(behavior)
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
                "unusable: buffers whole bodies, so an interrupted upload never reaches the server; switch request "
                    + "buffering off (nginx: proxy_request_buffering off)")
        } else if seen.chunkedBody == .withheld {
            limit("bodies without a length are buffered: let clients state Content-Length")
        }
        if seen.speaksOldHTTP {
            limit("HTTP/1.0 to the server, to which nobody sends 104: let it speak 1.1 (nginx: proxy_http_version 1.1)")
        }
        for method in seen.refusedMethods { refuse("unusable: refuses \(method); allow this method") }
        if let refused = seen.refusedContent {
            let longest = seen.longestContent ?? 0
            limit(
                "a limit of bodies between \(longest) and \(refused) bytes: raise it in the proxy (nginx: "
                    + "client_max_body_size 0), or let the server announce max-append-size=\(max(1, longest))")
        }
    }

    private mutating func verifyInterim(_ seen: ProxyBehavior) {
        let off = "set `Onward-Interim: off` in this proxy (or interim responses: off in the server), because "
        switch seen.interim {
        case .live?: settings.append("interim responses: on")
        case .limited(let most)?:
            limit(
                "interim responses: on, but no more than \(most) for one request (Onward counts where a proxy is in between); "
                    + "otherwise `Onward-Interim: off`")
        case .firstOnly?:
            limit("interim responses: on; the first one passes, progress does not")
        case .late?:
            limit("interim responses: on or off: they arrive only with the final response, too late for anybody")
        case .dropped?:
            limit("interim responses: on or off: none passes; clients learn of an upload by its final response only")
        case .takenForFinal?: limit(off + "it takes the first 104 for the final response")
        case .fatal(let what)?: limit(off + "a 104 ends in \(what)")
        case nil: break
        }
    }

    private mutating func verifyAborts(_ seen: ProxyBehavior) {
        if seen.abort == .faked { refuse("unusable: an upload that was cut off looks whole to the server") }
        if seen.chunkedAbort == .faked {
            limit(
                "require lengths in the server (Onward: --require-length), because a cut body without a length looks whole"
            )
        }
        if seen.abort == .hidden || (seen.chunkedAbort == .hidden && seen.abort != .hidden) {
            limit(
                "a client's end is not passed on: set an idle time-out in the server, and let newer requests take over")
        }
        if case .seen(_, let missing)? = seen.abort, missing > 0 {
            limit("\(missing) bytes were lost when the client ended: they have to be sent again")
        }
    }

    private mutating func verifyAnswers(_ seen: ProxyBehavior) {
        switch seen.earlyAnswer {
        case .late?:
            limit("errors arrive only after the whole body: bound what a request carries (Onward: --max-append-size)")
        case .lost(let what)?:
            limit("errors during a body are lost (\(what)): bound what a request carries (Onward: --max-append-size)")
        case .passed?, nil: break
        }
    }

    private mutating func verifyRemainder(_ seen: ProxyBehavior) {
        if !seen.changedFields.isEmpty {
            refuse("unusable: does not pass on \(seen.changedFields.joined(separator: ", ")) as it is")
        }
        if seen.tellsOrigin == false {
            limit("the server cannot know its own URL: pass Host on, or set it (Onward: --public-url)")
        }
        if seen.passesRanges == false { limit("Range or If-Range do not arrive: downloads begin anew") }
    }
}
