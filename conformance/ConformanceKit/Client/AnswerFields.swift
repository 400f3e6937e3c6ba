import HTTPSemantics

/// The fields of a scripted response, as a correct client reads them.
struct AnswerFields: FieldSection {
    let fields: Fields

    var offset: Int64? { integer("Upload-Offset") }

    func isComplete(_ profile: Profile) -> Bool? {
        boolean(profile.completenessName).map { $0 != profile.isInverse }
    }
}
