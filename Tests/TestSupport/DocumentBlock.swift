import FoundationEssentials

/// A block of code in a document.
package struct DocumentBlock {
    /// The language after the opening line's ```` ``` ````, such as `sh`; empty if there is none.
    package let language: String
    package let content: String

    /// - Parameter document: the path of the document in the repository.
    /// - Returns: the blocks in the order of the document.
    package static func all(in document: String) throws -> [DocumentBlock] {
        let root = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../..")
        let text = try String(contentsOf: root.appending(path: document), encoding: .utf8)
        var blocks: [DocumentBlock] = []
        var open: (language: String, lines: [Substring])?
        for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
            guard line.hasPrefix("```") else {
                open?.lines.append(line)
                continue
            }
            guard let (language, lines) = open else {
                open = (String(line.dropFirst(3)), [])
                continue
            }
            blocks.append(DocumentBlock(language: language, content: lines.map { $0 + "\n" }.joined()))
            open = nil
        }
        return blocks
    }

    /// The content of the only block with a text.
    package static func content(in document: String, containing text: String) throws -> String {
        let found = try all(in: document).filter { $0.content.contains(text) }
        guard found.count == 1 else { throw TestFailure("\(document) has \(found.count) blocks with '\(text)'") }
        return found[0].content
    }
}
