import HTTPSemantics

extension Fields {
    /// Registered fields with credentials.
    private static let secrets: Set<String> = [
        "authorization", "proxy-authorization", "authentication-info", "proxy-authentication-info", "cookie",
        "cookie2", "set-cookie", "set-cookie2", "dpop", "signature", "signature-input",
    ]
    /// Words in names of fields with credentials.
    private static let secretWords = [
        "token", "secret", "password", "passwd", "credential", "session", "csrf", "xsrf",
    ].map { Array($0.utf8) }

    /// Whether a field of this name may authorize a client that knows its value.
    ///
    /// These are some registered fields, and all fields whose names suggest a token, a key or a signature.
    static func isSecret(_ name: String) -> Bool {
        let name = name.lowercased()
        let bytes = Array(name.utf8)
        return secrets.contains(name) || name.hasSuffix("-key") || name.hasSuffix("apikey")
            || name.hasSuffix("-signature") || name.split(separator: "-").contains("auth")
            || secretWords.contains { word in bytes.indices.contains { bytes[$0...].starts(with: word) } }
    }

    /// Whether the value of a field of this name is known to contain no credentials, so that other origins and readers
    /// of resume data may see it. An unknown field may contain credentials.
    static func isHarmless(_ name: String) -> Bool {
        let name = name.lowercased()
        guard !isSecret(name) else { return false }
        let known: Set<String> = [
            "accept", "cache-control", "host", "last-modified", "pragma", "prefer", "priority", "range", "repr-digest",
            "user-agent",
        ]
        return known.contains(name) || belongsToTransfer(name)
            || ["accept-", "content-", "if-", "want-"].contains { name.hasPrefix($0) }
    }

    /// The fields whose values are known to contain no credentials.
    var withoutSecrets: Fields {
        Fields(filter { Fields.isHarmless($0.name) }.map { ($0.name, $0.value) })
    }

    /// A copy in which the values of secret fields and of the fields in `names` are hidden.
    func hidingSecrets(_ names: Set<String> = []) -> Fields {
        Fields(
            map { field in
                let isHidden = Fields.isSecret(field.name) || names.contains(field.name.lowercased())
                return (field.name, isHidden ? TransferRecord.hidden : field.value)
            })
    }

    /// These fields followed by `others`, which replace fields of the same name.
    func merging(_ others: Fields) -> Fields {
        var result = self
        for field in others { result.remove(field.name) }
        for field in others { result.append(field.name, field.value) }
        return result
    }

    /// Whether a caller's field of this name belongs to the creation of an upload alone: it describes the
    /// representation or is a condition on the target.
    static func belongsToCreation(_ name: String) -> Bool {
        let name = name.lowercased()
        return name.hasPrefix("content-") || name.hasPrefix("if-")
            || ["repr-digest", "want-repr-digest", "want-content-digest", "last-modified"].contains(name)
    }

    /// Whether only the transfer sets a field of this name, and not the caller: fields of framing, connections and the
    /// upload protocol.
    static func belongsToTransfer(_ name: String) -> Bool {
        let name = name.lowercased()
        let framing: Set<String> = [
            "content-length", "content-range", "transfer-encoding", "te", "trailer", "connection", "keep-alive",
            "upgrade", "expect",
        ]
        return framing.contains(name) || name.hasPrefix("upload-")
    }
}
