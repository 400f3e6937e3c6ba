/// A section of a manual page.
package struct ManualSection: Sendable {
    package enum Block: Sendable {
        case paragraph(String)
        /// Terms and what they mean.
        case terms([(String, String)])
        /// Lines that are shown unchanged.
        case example(String)
    }

    package let title: String
    package let blocks: [Block]

    package init(_ title: String, _ blocks: [Block]) {
        self.title = title
        self.blocks = blocks
    }
}
