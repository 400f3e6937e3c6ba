/// The error of a check: a required property is not true for the input. `description` states how.
struct Violation: Error, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}

/// Ends the check of an input with a ``Violation`` if `condition` is false.
func require(_ condition: Bool, _ description: @autoclosure () -> String) throws(Violation) {
    if !condition { throw Violation(description()) }
}

/// Returns the value; if it is `nil`, ends the check of an input with a ``Violation``.
func require<Value>(_ value: Value?, _ description: @autoclosure () -> String) throws(Violation) -> Value {
    guard let value else { throw Violation(description()) }
    return value
}
