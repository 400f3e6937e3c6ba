/// Why nothing could be judged at all.
package struct RunFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
