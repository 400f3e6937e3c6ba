import HTTPSemantics

/// Whether an input is one incomplete upload, according to a parser that is so strict that every server has to agree.
enum CutRequest {
    static func isCut(_ bytes: [UInt8]) -> Bool {
        guard let text = String(validating: bytes, as: UTF8.self), let headEnd = end(of: bytes) else { return false }
        let head = String(decoding: bytes[..<headEnd], as: UTF8.self)
        // The head has only characters for which every server finds the same lines and the same end.
        guard text.utf8.count == bytes.count, !head.utf8.contains(0),
            head.utf8.count(where: { $0 == 0x0D }) == head.utf8.count(where: { $0 == 0x0A }),
            zip(bytes[..<headEnd], bytes[..<headEnd].dropFirst()).allSatisfy({ ($0 == 0x0D) == ($1 == 0x0A) }),
            let request = RequestText.head(head), request.version >= .http10,
            ["PUT", "POST", "PATCH"].contains(request.method.rawValue),
            case .success(let framing) = MessageFraming.evaluate(request)
        else { return false }
        let content = bytes[headEnd...]
        return switch framing {
        case .none: false
        case .length(let length): Int64(content.count) < length
        // Content without the digit 0 has no last chunk.
        case .chunked: !content.contains(0x30)
        }
    }

    private static func end(of bytes: [UInt8]) -> Int? {
        guard bytes.count >= 4 else { return nil }
        return (4...bytes.count).first { bytes[($0 - 4)..<$0].elementsEqual([0x0D, 0x0A, 0x0D, 0x0A]) }
    }
}
