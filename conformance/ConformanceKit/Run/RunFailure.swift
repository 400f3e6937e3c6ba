/// Why nothing could be verified at all.
package struct RunFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
