import HTTPSemantics
import ResumableUpload

/// The form in which a value is stored in the catalog: a version, then its parts.
package protocol SavedForm {
    static var savedVersion: UInt8 { get }
    func encode(into encoder: inout ByteEncoder)
    init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed)
}

extension SavedForm {
    package static var savedVersion: UInt8 { 1 }

    package var savedBytes: [UInt8] {
        var encoder = ByteEncoder()
        encoder.write(Self.savedVersion)
        encode(into: &encoder)
        return encoder.bytes
    }

    package init(savedBytes: [UInt8]) throws(ByteDecoder.Malformed) {
        var decoder = ByteDecoder(savedBytes)
        guard try decoder.byte() == Self.savedVersion else { throw ByteDecoder.Malformed() }
        try self.init(from: &decoder)
        guard decoder.isAtEnd else { throw ByteDecoder.Malformed() }
    }
}

extension Fields: SavedForm {
    package func encode(into encoder: inout ByteEncoder) {
        encoder.write(underestimatedCount)
        for field in self {
            encoder.write(field.name)
            encoder.write(field.value)
        }
    }

    package init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        self.init(
            try decoder.array { (decoder) throws(ByteDecoder.Malformed) in (try decoder.string(), try decoder.string())
            })
    }
}

extension Response: SavedForm {
    package func encode(into encoder: inout ByteEncoder) {
        encoder.write(status.rawValue)
        fields.encode(into: &encoder)
        guard let bytes = content.bytes else { preconditionFailure("a response is loaded before it is saved") }
        encoder.write(bytes)
    }

    package init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        guard let status = Int(exactly: try decoder.integer()) else { throw ByteDecoder.Malformed() }
        self.init(
            status: Status(rawValue: status), fields: try Fields(from: &decoder), content: try decoder.byteArray())
    }
}

extension NewUpload: SavedForm {
    package func encode(into encoder: inout ByteEncoder) {
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
        encoder.write(digests.isEmpty ? [] : digests.map(\.rawValue).sorted()) { $0.write($1) }
    }

    package init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
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
    package func encode(into encoder: inout ByteEncoder) {
        encoder.write(name.segments) { $0.write($1) }
        encoder.write(replaced)
        encoder.write(identity)
        fields.encode(into: &encoder)
        response.encode(into: &encoder)
        refused.encode(into: &encoder)
    }

    package init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        let segments = try decoder.array { (decoder) throws(ByteDecoder.Malformed) in try decoder.string() }
        guard let name = PublishedName(segments: segments) else { throw ByteDecoder.Malformed() }
        self.init(
            name: name, replaced: try decoder.optionalString(), identity: try decoder.string(),
            fields: try Fields(from: &decoder), response: try Response(from: &decoder),
            refused: try Response(from: &decoder))
    }
}

extension UploadEvent: SavedForm {
    package func encode(into encoder: inout ByteEncoder) {
        for text in [id, kind.rawValue, upload, principal, method, target] { encoder.write(text) }
        for number in [time, length, status.map(Int64.init)] { encoder.write(number) }
        for text in [file, reason] { encoder.write(text) }
        fields.encode(into: &encoder)
    }

    package init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        var texts: [String] = []
        for _ in 0..<6 { texts.append(try decoder.string()) }
        guard let kind = Kind(rawValue: texts[1]), let time = try decoder.optionalInteger() else {
            throw ByteDecoder.Malformed()
        }
        let length = try decoder.optionalInteger()
        let status = try decoder.optionalInteger().flatMap { Int(exactly: $0) }
        self.init(
            id: texts[0], kind: kind, time: time, upload: texts[2], principal: texts[3], method: texts[4],
            target: texts[5], length: length, status: status, file: try decoder.optionalString(),
            reason: try decoder.optionalString(), fields: try Fields(from: &decoder))
    }
}

/// The encoded states of an upload's digests.
package struct DigestStates: SavedForm {
    package var states: [[UInt8]]

    package init(_ states: [[UInt8]]) { self.states = states }

    package func encode(into encoder: inout ByteEncoder) { encoder.write(states) { $0.write($1) } }

    package init(from decoder: inout ByteDecoder) throws(ByteDecoder.Malformed) {
        states = try decoder.array { (decoder) throws(ByteDecoder.Malformed) in try decoder.byteArray() }
    }
}

/// Writes values one after the other: integers in big-endian order, values of variable length after their length.
package struct ByteEncoder {
    private(set) var bytes: [UInt8] = []

    /// Reserves enough space for nearly all rows, so that the array is not copied while it grows.
    init() { bytes.reserveCapacity(256) }

    mutating func write(_ value: UInt8) { bytes.append(value) }

    mutating func write(_ value: Int64) {
        withUnsafeBytes(of: value.bigEndian) { bytes += $0 }
    }

    mutating func write(_ value: Int) { write(Int64(value)) }

    mutating func write(_ value: Bool) { write(value ? 1 as UInt8 : 0) }

    mutating func write(_ value: [UInt8]) {
        write(value.count)
        bytes += value
    }

    mutating func write(_ value: String) {
        write(value.utf8.count)
        bytes += value.utf8
    }

    mutating func write(_ value: Int64?) {
        write(value != nil)
        if let value { write(value) }
    }

    mutating func write(_ value: String?) {
        write(value != nil)
        if let value { write(value) }
    }

    mutating func write<Element>(_ values: [Element], _ body: (inout ByteEncoder, Element) -> Void) {
        write(values.count)
        for value in values { body(&self, value) }
    }
}

/// Reads values that ``ByteEncoder`` wrote. Malformed bytes cause an error; the decoder never reads past their end.
package struct ByteDecoder {
    /// The bytes are not a valid encoding of the requested value.
    package struct Malformed: Error {
        package init() {}
    }

    private var remaining: ArraySlice<UInt8>

    init(_ bytes: [UInt8]) { remaining = bytes[...] }

    var isAtEnd: Bool { remaining.isEmpty }

    private mutating func next(_ count: Int) throws(Malformed) -> ArraySlice<UInt8> {
        guard count >= 0, count <= remaining.count else { throw Malformed() }
        defer { remaining = remaining.dropFirst(count) }
        return remaining.prefix(count)
    }

    mutating func byte() throws(Malformed) -> UInt8 { try next(1).first ?? 0 }

    mutating func integer() throws(Malformed) -> Int64 {
        Int64(bitPattern: try next(8).reduce(0 as UInt64) { $0 << 8 | UInt64($1) })
    }

    mutating func boolean() throws(Malformed) -> Bool { try byte() == 1 }

    mutating func byteArray() throws(Malformed) -> [UInt8] {
        guard let count = Int(exactly: try integer()) else { throw Malformed() }
        return Array(try next(count))
    }

    mutating func string() throws(Malformed) -> String {
        guard let string = String(validating: try byteArray(), as: UTF8.self) else { throw Malformed() }
        return string
    }

    mutating func optionalInteger() throws(Malformed) -> Int64? { try boolean() ? integer() : nil }

    mutating func optionalString() throws(Malformed) -> String? { try boolean() ? string() : nil }

    mutating func array<Element>(
        _ body: (inout ByteDecoder) throws(Malformed) -> Element
    ) throws(Malformed) -> [Element] {
        // Every element has at least one byte, so that a wrong count causes no endless loop and no large allocation.
        let count = try integer()
        guard count >= 0, count <= Int64(remaining.count) else { throw Malformed() }
        var result: [Element] = []
        for _ in 0..<count { result.append(try body(&self)) }
        return result
    }
}

/// The values of the row of an upload, as every catalog stores them in its columns. A value is nil if its column is null.
package struct StoredRow {
    /// The values of the column `phase`. Uploads with a value below `complete` are unfinished.
    package enum Phase {
        package static let receiving: Int64 = 0
        package static let processing: Int64 = 1
        package static let complete: Int64 = 2
        package static let invalid: Int64 = 3
    }

    package var id: [UInt8]?
    package var blob: String?
    package var creation: [UInt8]?
    package var createdAt: Int64?
    package var expiresAt: Int64?
    package var epoch: Int64?
    package var offset: Int64?
    package var length: Int64?
    package var phase: Int64?
    package var response: [UInt8]?
    package var reason: String?
    package var intent: [UInt8]?
    package var digests: [UInt8]?
    package var isWithdrawn: Bool

    package init(
        id: [UInt8]?, blob: String?, creation: [UInt8]?, createdAt: Int64?, expiresAt: Int64?, epoch: Int64?,
        offset: Int64?, length: Int64?, phase: Int64?, response: [UInt8]?, reason: String?, intent: [UInt8]?,
        digests: [UInt8]?, isWithdrawn: Bool
    ) {
        (self.id, self.blob, self.creation, self.createdAt, self.expiresAt) = (id, blob, creation, createdAt, expiresAt)
        (self.epoch, self.offset, self.length, self.phase) = (epoch, offset, length, phase)
        (self.response, self.reason, self.intent, self.digests) = (response, reason, intent, digests)
        self.isWithdrawn = isWithdrawn
    }

    package init(_ row: CatalogRow) {
        let (phase, response, reason): (Int64, [UInt8]?, String?) =
            switch row.phase {
            case .receiving: (Phase.receiving, nil, nil)
            case .processing: (Phase.processing, nil, nil)
            case .complete(let response): (Phase.complete, response.savedBytes, nil)
            case .invalid(let reason): (Phase.invalid, nil, reason)
            }
        self.init(
            id: row.id.bytes, blob: row.blob, creation: row.upload.savedBytes, createdAt: row.createdAt,
            expiresAt: row.expiresAt, epoch: row.epoch, offset: row.offset, length: row.length, phase: phase,
            response: response, reason: reason, intent: row.intent?.savedBytes,
            digests: DigestStates(row.digestStates).savedBytes, isWithdrawn: row.isWithdrawn)
    }

    fileprivate func decodedPhase(_ number: Int64) throws(ByteDecoder.Malformed) -> UploadRecord.Phase {
        switch number {
        case Phase.receiving: return .receiving
        case Phase.processing: return .processing
        case Phase.complete: return .complete(try Response(savedBytes: response ?? []))
        case Phase.invalid: return .invalid(reason: reason ?? "")
        default: throw ByteDecoder.Malformed()
        }
    }
}

extension CatalogRow {
    package init(_ stored: StoredRow) throws(StoreError) {
        guard let id = stored.id.flatMap(UploadID.init(bytes:)), let blob = stored.blob, let creation = stored.creation,
            let createdAt = stored.createdAt, let epoch = stored.epoch, let offset = stored.offset,
            let phase = stored.phase, let digests = stored.digests
        else { throw .damaged("a row of an upload lacks a value") }
        do throws(ByteDecoder.Malformed) {
            self.init(
                id: id, blob: blob, upload: try NewUpload(savedBytes: creation), createdAt: createdAt,
                expiresAt: stored.expiresAt, epoch: epoch, offset: offset, length: stored.length,
                phase: try stored.decodedPhase(phase),
                intent: try stored.intent.map { (bytes) throws(ByteDecoder.Malformed) in
                    try PublicationIntent(savedBytes: bytes)
                },
                digestStates: try DigestStates(savedBytes: digests).states, isWithdrawn: stored.isWithdrawn)
        } catch {
            throw .damaged("a row of an upload cannot be read")
        }
    }
}
