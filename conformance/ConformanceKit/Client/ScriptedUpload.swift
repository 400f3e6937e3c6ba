/// An upload resource of the scripted server.
struct ScriptedUpload: Sendable {
    /// From 1.
    let number: Int
    /// Its path at the server, which cannot be guessed.
    var path: String
    var offset: Int64 = 0
    var isComplete = false
    var length: Int64?
    var isGone = false
    /// Whether all of its bytes were those of the file.
    var isIntact = true
    /// The version in which it was created.
    let profile: Profile
}
