/// A property that does not hold for an input.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Ends the check of an input where `condition` is false.
func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(description()) }
}

/// The value; where there is none, the check ends.
func require<Value>(_ value: Value?, _ description: @autoclosure () -> String) throws(Violation) -> Value {
    guard let value else { throw Violation(description()) }
    return value
}
