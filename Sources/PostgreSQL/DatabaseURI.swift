import CPostgreSQL

/// The address of a database: a URI `postgresql://` (postgresql.org/docs/current/libpq-connect.html). It never contains a
/// password.
package struct DatabaseURI: Sendable, Hashable, CustomStringConvertible {
    /// The text is not an accepted URI. The message repeats no part of the URI that may be secret.
    package struct ParsingError: Error, Hashable, CustomStringConvertible {
        package let description: String
    }

    /// The parameters of libpq that the URI contains, in libpq's order.
    let parameters: [Parameter]

    struct Parameter: Sendable, Hashable {
        var name: String
        var value: String
    }

    package init(parsing text: String) throws(ParsingError) {
        guard text.hasPrefix("postgresql://") || text.hasPrefix("postgres://") else {
            throw ParsingError(description: "the URI of the database must begin with postgresql://")
        }
        parameters = try Self.parse(text)
        if parameters.contains(where: { $0.name == "password" || $0.name == "sslpassword" }) {
            throw ParsingError(
                description: """
                    the URI of the database must not contain a password, because other users of the system can read \
                    command lines: write it into a file that the variable PGPASSFILE names, or into PGPASSWORD
                    """)
        }
    }

    /// The number of hosts in the URI, at least 1. Each can have several addresses.
    var hostCount: Int {
        let lists = parameters.filter { $0.name == "host" || $0.name == "hostaddr" }
        return lists.map { $0.value.split(separator: ",", omittingEmptySubsequences: false).count }.max() ?? 1
    }

    /// The hosts, ports and name of the database. Other parameters are omitted.
    package var description: String {
        func value(_ name: String) -> String? { parameters.first { $0.name == name }?.value }
        let hosts = value("host") ?? value("hostaddr") ?? ""
        let port = value("port").map { ":\($0)" } ?? ""
        return "postgresql://\(hosts)\(port)/\(value("dbname") ?? "")"
    }

    private static func parse(_ text: String) throws(ParsingError) -> [Parameter] {
        var message: UnsafeMutablePointer<CChar>?
        guard let options = PQconninfoParse(text, &message) else {
            let reason = message.map { String(cString: $0) } ?? "no memory"
            PQfreemem(message)
            // libpq's message repeats parts of the text.
            let mayHaveSecrets = text.contains("@") || text.contains("%") || text.lowercased().contains("pass")
            let detail =
                unknownParameter(of: text, reason).map { "it has the unknown parameter '\($0)'" }
                ?? (mayHaveSecrets ? nil : reason.onOneLine)
            throw ParsingError(
                description: "the URI of the database is invalid" + (detail.map { ": " + $0 } ?? ""))
        }
        defer { PQconninfoFree(options) }
        var parameters: [Parameter] = []
        var option = options
        while let keyword = option.pointee.keyword {
            if let value = option.pointee.val {
                parameters.append(Parameter(name: String(cString: keyword), value: String(cString: value)))
            }
            option += 1
        }
        return parameters
    }

    /// The name of the parameter that libpq does not know; `nil` if libpq has another reason, or if a part of the query
    /// can belong to a password.
    private static func unknownParameter(of text: String, _ reason: String) -> String? {
        guard reason.hasPrefix("invalid URI query parameter"), let start = text.lastIndex(of: "?") else { return nil }
        let query = text[start...].dropFirst()
        guard !query.contains("@"), !query.contains("%"), !query.lowercased().contains("pass") else { return nil }
        let names = query.split(separator: "&").map { $0.prefix { $0 != "=" } }
        return names.first { reason.contains("\"\($0)\"") && $0.utf8.allSatisfy { (0x21...0x7E).contains($0) } }
            .map(String.init)
    }
}

extension String {
    /// The text on one line, without tabs and indentation: libpq formats its messages with both.
    var onOneLine: String {
        split(whereSeparator: \.isNewline)
            .map { $0.split(whereSeparator: \.isWhitespace).joined(separator: " ") }
            .filter { !$0.isEmpty }
            .joined(separator: "; ")
    }
}
