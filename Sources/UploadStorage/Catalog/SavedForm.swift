import HTTPSemantics
import ResumableUpload

/// The form in which a value is stored in the catalog: a version, then its parts.
protocol SavedForm {
    static var savedVersion: UInt8 { get }
    func encode(into encoder: inout ByteEncoder)
    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed)
}

extension SavedForm {
    static var savedVersion: UInt8 { 1 }

    var savedBytes: [UInt8] {
        var encoder = ByteEncoder()
        encoder.write(Self.savedVersion)
        encode(into: &encoder)
        return encoder.bytes
    }

    init(savedBytes: [UInt8]) throws(ByteDecoder.Malformed) {
        var decoder = ByteDecoder(savedBytes)
        guard try decoder.byte() == Self.savedVersion else { throw ByteDecoder.Malformed() }
        try self.init(from: &decoder)
        guard decoder.isAtEnd else { throw ByteDecoder.Malformed() }
    }
}

extension Fields: SavedForm {
    func encode(into encoder: inout ByteEncoder) {
        encoder.write(underestimatedCount)
        for field in self {
            encoder.write(field.name)
            encoder.write(field.value)
        }
    }

    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        self.init(
            try decoder.array { (decoder) throws(ByteDecoder.Malformed) in (try decoder.string(), try decoder.string())
            })
    }
}

extension Response: SavedForm {
    func encode(into encoder: inout ByteEncoder) {
        encoder.write(status.rawValue)
        fields.encode(into: &encoder)
        guard let bytes = content.bytes else { preconditionFailure("a response is loaded before it is saved") }
        encoder.write(bytes)
    }

    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        guard let status = Int(exactly: try decoder.integer()) else { throw ByteDecoder.Malformed() }
        self.init(
            status: Status(rawValue: status), fields: try Fields(from: &decoder), content: try decoder.byteArray())
    }
}

extension NewUpload: SavedForm {
    func encode(into encoder: inout ByteEncoder) {
        encoder.write(principal)
        encoder.write(method.rawValue)
        encoder.write(target)
        fields.encode(into: &encoder)
        encoder.write(dialect.rawValue)
        for limit in [
            limits.maxSize, limits.minSize, limits.maxAppendSize, limits.minAppendSize, limits.maxAge, length,
            expiresAt,
        ] {
            encoder.write(limit)
        }
        encoder.write(digests.map(\.rawValue).sorted()) { $0.write($1) }
    }

    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        let principal = try decoder.string()
        let method = Method(rawValue: try decoder.string())
        let target = try decoder.string()
        let fields = try Fields(from: &decoder)
        guard let number = Int(exactly: try decoder.integer()), let dialect = Dialect(rawValue: number) else {
            throw ByteDecoder.Malformed()
        }
        var numbers: [Int64?] = []
        for _ in 0..<7 { numbers.append(try decoder.optionalInteger()) }
        let names = try decoder.array { (decoder) throws(ByteDecoder.Malformed) in try decoder.string() }
        self.init(
            principal: principal, method: method, target: target, fields: fields, dialect: dialect,
            limits: UploadLimits(
                maxSize: numbers[0], minSize: numbers[1], maxAppendSize: numbers[2], minAppendSize: numbers[3],
                maxAge: numbers[4]),
            length: numbers[5], digests: Set(names.compactMap(DigestAlgorithm.init)), expiresAt: numbers[6])
    }
}

extension PublicationIntent: SavedForm {
    func encode(into encoder: inout ByteEncoder) {
        encoder.write(name.segments) { $0.write($1) }
        encoder.write(replaced)
        encoder.write(identity)
        fields.encode(into: &encoder)
        response.encode(into: &encoder)
        refused.encode(into: &encoder)
    }

    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        let segments = try decoder.array { (decoder) throws(ByteDecoder.Malformed) in try decoder.string() }
        guard let name = PublishedName(segments: segments) else { throw ByteDecoder.Malformed() }
        self.init(
            name: name, replaced: try decoder.optionalString(), identity: try decoder.string(),
            fields: try Fields(from: &decoder), response: try Response(from: &decoder),
            refused: try Response(from: &decoder))
    }
}

/// The encoded states of an upload's digests.
struct DigestStates: SavedForm {
    var states: [[UInt8]]

    init(_ states: [[UInt8]]) { self.states = states }

    func encode(into encoder: inout ByteEncoder) { encoder.write(states) { $0.write($1) } }

    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        states = try decoder.array { (decoder) throws(ByteDecoder.Malformed) in try decoder.byteArray() }
    }
}
