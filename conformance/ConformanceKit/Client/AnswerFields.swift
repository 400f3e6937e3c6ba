import HTTPSemantics

/// The fields of an answer, to be read as the client should.
struct AnswerFields: FieldSection {
    let fields: Fields

    var offset: Int64? { integer("Upload-Offset") }

    func isComplete(_ profile: Profile) -> Bool? {
        boolean(profile.completenessName).map { $0 != profile.isInverse }
    }
}
