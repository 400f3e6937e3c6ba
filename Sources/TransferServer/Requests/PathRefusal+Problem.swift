import HTTPSemantics

extension ProblemDetails {
    /// The problem of an invalid path.
    init(_ refusal: PathSegments.Refusal) {
        let advice: String =
            switch refusal {
            case .notAbsolute: "it does not begin with a slash."
            case .illegalCharacter: "it has a character that URLs must percent-encode."
            case .malformedEscape: "a percent sign is not followed by two hexadecimal digits."
            case .nul, .controlCharacter: "it has a control character."
            case .encodedSlash, .backslash: "a name must not contain a slash or backslash."
            case .dotSegment: "\".\" and \"..\" are not followed."
            case .emptySegment: "it has two slashes in a row."
            case .segmentTooLong: "a name has more than \(PathSegments.maximumSegmentLength) bytes."
            case .pathTooLong: "it has more than \(PathSegments.maximumPathLength) bytes."
            case .pathTooDeep: "it has more than \(PathSegments.maximumDepth) segments."
            case .invalidUTF8: "it is not UTF-8."
            }
        self.init(
            status: refusal == .pathTooLong ? 414 : 400, detail: "The path is refused: " + advice,
            code: refusal.rawValue)
    }
}
