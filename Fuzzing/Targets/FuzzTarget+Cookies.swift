import HTTPSemantics
import TestSupport

@testable import TransferServer

extension FuzzTarget {
    /// `Cookie` fields with the cookie of a session. It is accepted only as the server has made it, and nothing of it
    /// remains for an application, which gets all other cookies unchanged.
    static let cookies = FuzzTarget(
        name: "cookies",
        dictionary: [SessionCookie.name, "=", ";", "; ", ":", "\t", "\n", "==", "anna", "\u{301}"]
            + Session.all.map(\.value),
        seeds: { generator in
            (0..<200).map { _ in
                let pairs = (0..<Int.random(in: 1...4, using: &generator)).map { _ in
                    let name = generator.pick([
                        SessionCookie.name, SessionCookie.name, "a", " \(SessionCookie.name)\t", "",
                    ])
                    let separator = generator.pick(["=", "=", " = ", ""])
                    var parts = generator.pick(Session.all).value.split(separator: ":").map(String.init)
                    if generator.pick([true, false]) {
                        // Parts of two cookies, or an altered part.
                        let index = Int.random(in: parts.indices, using: &generator)
                        let other = generator.pick(Session.all).value.split(separator: ":").map(String.init)
                        parts[index] = generator.pick([other[index], "", parts[index] + "=", "0" + parts[index]])
                    }
                    return name + separator + generator.pick([parts.joined(separator: ":"), "1", "\"a; b\""])
                }
                return Array(pairs.joined(separator: generator.pick(["; ", ";", "\n"])).utf8)
            }
        },
        check: { input throws(Violation) in
            var fields: Fields = ["Accept": "*/*"]
            for line in InputReader(input).lines { fields.append("Cookie", line) }
            let values = fields.values("Cookie").flatMap(Self.sessionValues)
            for session in Session.all {
                for now in [session.expiry - 1, session.expiry] {
                    let token = SessionCookie.token(in: fields, of: session.list, now: now)
                    guard let token else { continue }
                    try require(now < session.expiry, "a cookie is accepted after its end")
                    try require(token.digest == TokenList.digest(session.token), "the cookie has another token")
                    try require(
                        values.contains(Array(session.value.utf8)), "a cookie is accepted that the server has not made")
                }
            }
            let remaining = SessionCookie.removed(from: fields)
            for session in Session.all {
                try require(
                    SessionCookie.token(in: remaining, of: session.list, now: 0) == nil, "a valid cookie remains")
            }
            try require(SessionCookie.removed(from: remaining) == remaining, "a second removal changes \(remaining)")
            try require(remaining["Accept"] == "*/*", "another field is removed")
            for value in fields.values("Cookie") where !value.contains(SessionCookie.name) {
                try require(remaining.values("Cookie").contains(value), "another cookie is changed: \(value)")
            }
        })

    /// The values of the cookies in a field line that have the name of the cookie of a session.
    private static func sessionValues(_ line: String) -> [[UInt8]] {
        Array(line.utf8).split(separator: UInt8(ascii: ";")).compactMap { pair in
            let isBlank = { (byte: UInt8) in byte == UInt8(ascii: " ") || byte == UInt8(ascii: "\t") }
            guard let end = pair.firstIndex(of: UInt8(ascii: "=")) else { return nil }
            let name = pair[..<end].drop(while: isBlank).reversed().drop(while: isBlank).reversed()
            return Array(name) == Array(SessionCookie.name.utf8) ? Array(pair[(end + 1)...]) : nil
        }
    }

    /// A cookie that the server has made, with the list that has only its token.
    private struct Session {
        let token: String
        let expiry: Int64
        let value: String
        let list: TokenList

        init(_ token: String, of principal: String, expiry: Int64) {
            self.token = token
            self.expiry = expiry
            value = SessionCookie.value(forToken: token, of: principal, expiry: expiry) ?? ""
            list = (try? TokenList(parsing: "\(principal) \(token)")) ?? TokenList()
        }

        static let all = [
            Session("token-of-anna-0001", of: "anna", expiry: 1_800_000_000),
            Session("token-of-anna-0002", of: "anna", expiry: 1_800_000_000),
            Session("token-of-ben-00001", of: "ben", expiry: 1_900_000_000),
        ]
    }
}
