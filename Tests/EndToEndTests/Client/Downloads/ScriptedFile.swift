import HTTPSemantics

/// A representation that a scripted server serves with ranges and conditions, as RFC 9110 requires. A test calls
/// ``serve(_:_:cut:)`` for the requests to which it does not respond itself.
struct ScriptedFile: Sendable {
    var bytes: [UInt8]
    /// The validators and the other fields of the representation.
    var fields: Fields = ["ETag": "\"one\""]

    /// - Parameter cut: the number of bytes of content after which the connection is closed; `nil` if it stays open.
    func serve(_ request: ReceivedRequest, _ reply: Reply, cut: Int? = nil) throws {
        let isSame = request.fields["If-Range"].map { value in
            [fields["ETag"], fields["Last-Modified"]].contains(value)
        }
        guard let start = first(of: request), isSame ?? true else {
            return try send(200, fields, bytes[...], reply, cut)
        }
        guard start < bytes.count else {
            return try reply.respond(416, fields.merging(["Content-Range": "bytes */\(bytes.count)"]))
        }
        try send(
            206, fields.merging(["Content-Range": "bytes \(start)-\(bytes.count - 1)/\(bytes.count)"]),
            bytes[start...], reply, cut)
    }

    /// The offset in the request's field `Range: bytes=<offset>-`.
    func first(of request: ReceivedRequest) -> Int? {
        guard let value = request.fields["Range"], value.hasPrefix("bytes="), value.hasSuffix("-") else { return nil }
        return Int(value.dropFirst(6).dropLast())
    }

    private func send(
        _ status: Int, _ fields: Fields, _ content: ArraySlice<UInt8>, _ reply: Reply, _ cut: Int?
    ) throws {
        guard let cut, cut < content.count else { return try reply.respond(status, fields, [UInt8](content)) }
        try reply.begin(status, fields.merging(["Content-Length": "\(content.count)"]))
        try reply.send([UInt8](content.prefix(cut)))
        reply.close()
    }
}

extension Fields {
    /// Returns these fields and those of `others`. A field of `others` replaces fields with the same name.
    func merging(_ others: Fields) -> Fields {
        var result = self
        for field in others { result.set(field.name, field.value) }
        return result
    }
}
