/// A property that is not true for an input.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Ends the check of an input if `condition` is false.
func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(description()) }
}

/// Returns the value; if it is nil, the check ends.
func require<Value>(_ value: Value?, _ description: @autoclosure () -> String) throws(Violation) -> Value {
    guard let value else { throw Violation(description()) }
    return value
}
