import HTTPSemantics

@testable import TransferServer

extension FuzzTarget {
    /// Token files and the Authorization field. A request without a valid token of the file must be refused.
    static let tokens = FuzzTarget(
        name: "tokens",
        dictionary: [
            "sha256:", "read", "create", "write", ",", "prefix=/files/x/", "#", "\r\n", "Bearer ", "bearer", "==",
        ],
        seeds: { generator in
            (0..<100).map { _ in
                let lines = (0..<Int.random(in: 1...4, using: &generator)).map { index in
                    let token = generator.pick([
                        "abcdefghijklmnop\(index)", "short", "sha256:" + String(repeating: "0a", count: 32),
                    ])
                    let scopes = generator.pick(["", " read", " read,create", " write", " nothing"])
                    return "name\(index) \(token)\(scopes)" + generator.pick(["", " prefix=/files/x/", " # comment"])
                }
                return Array(lines.joined(separator: generator.pick(["\n", "\r\n"])).utf8)
            }
        },
        check: { input throws(Violation) in
            let text = InputReader(input).text
            let list: TokenList
            do throws(TokenList.Malformed) { list = try TokenList(parsing: text) } catch {
                try require(error.line >= 1 && !error.reason.isEmpty, "\(error)")
                list = TokenList()
            }
            try require(list.count <= input.count, "\(list.count) tokens from \(input.count) bytes")
            for token in list.tokens {
                try require(token.digest.count == 32 && !token.scopes.isEmpty, "\(token)")
                try require(list.token(withDigest: token.digest) == token, "\(token) is not found")
                try require(token.prefixes.allSatisfy { !$0.segments.isEmpty }, "\(token) has an empty prefix")
            }
            let authorizer = TokenAuthorizer(list)
            let target = try require(RequestTarget(parsing: "/files/a"), "/files/a is not accepted as a request target")
            for value in [text, "Bearer not-in-any-list-\(text.utf8.count)", "Basic \(text)"] {
                let head = RequestHead(method: .put, target: "/files/a", fields: ["Host": "h", "Authorization": value])
                guard let identity = try? authorizer.identify(head, target: target) else { continue }
                // The token is the last word of the value. White space after it is ignored.
                let known = value.split { $0 == " " || $0 == "\t" }.last.map { TokenList.digest(String($0)) } ?? []
                try require(
                    list.token(withDigest: known)?.name == identity.principal,
                    "\(value) is accepted, but the file does not have its token for \(identity.principal)")
            }
        })
}
