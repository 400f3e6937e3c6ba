import CCurl
import HTTPSemantics

/// The header lines of a request in libcurl's notation, in two blocks of memory.
struct HeaderLines {
    private let text: UnsafeMutableRawBufferPointer
    private let nodes: UnsafeMutablePointer<curl_slist>
    private var textEnd = 0
    private var count = 0

    private static let framing = ["Expect", "Content-Length", "Transfer-Encoding"]

    init(_ request: TransportRequest) {
        // Each line has a separator, and a zero at its end. The first lines are those without a value.
        text = .allocate(
            byteCount: request.fields.reduce(64) { $0 + $1.name.utf8.count + $1.value.utf8.count + 4 }, alignment: 1)
        nodes = .allocate(capacity: request.fields.count + 2)
        // This line removes libcurl's own Expect field: libcurl would wait for a second, and before 8.7 a 104 would not
        // end the wait.
        append("Expect", ":", "")
        // libcurl would describe content that it gets with the request as a form.
        if !request.fields.contains("Content-Type") { append("Content-Type", ":", "") }
        for field in request.fields where !Self.framing.contains(where: field.name.equalsIgnoringASCIICase) {
            let value = field.value.drop { $0 == " " || $0 == "\t" }
            // libcurl reads "Name:" as a request to remove its own line.
            append(field.name, value.isEmpty ? ";" : ": ", value, isOpaque: field.value.hasOpaqueBytes)
        }
    }

    /// Frees the memory. No other call may follow.
    func deallocate() {
        text.deallocate()
        nodes.deallocate()
    }

    /// The list, which is valid until the memory is freed.
    var list: UnsafeMutablePointer<curl_slist> { nodes }

    /// - Parameter isOpaque: whether some bytes of the value are not UTF-8.
    private mutating func append(_ name: String, _ separator: String, _ value: Substring, isOpaque: Bool = false) {
        let start = text.baseAddress?.advanced(by: textEnd)
        copy(name[...])
        copy(separator[...])
        if isOpaque { copy(String(value).fieldBytes) } else { copy(value) }
        text[textEnd] = 0
        textEnd += 1
        (nodes + count).initialize(
            to: curl_slist(data: start?.assumingMemoryBound(to: CChar.self), next: nil))
        if count > 0 { nodes[count - 1].next = nodes + count }
        count += 1
    }

    private mutating func copy(_ part: Substring) {
        var part = part
        part.withUTF8 { copy($0) }
    }

    private mutating func copy(_ bytes: some Collection<UInt8>) {
        UnsafeMutableRawBufferPointer(rebasing: text[textEnd...]).copyBytes(from: bytes)
        textEnd += bytes.count
    }
}
