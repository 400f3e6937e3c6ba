/// The reason why a run could not start.
package struct RunFailure: Error, CustomStringConvertible {
    package let description: String

    init(_ description: String) { self.description = description }
}
