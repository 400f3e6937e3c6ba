/// An upload resource of the scripted server.
struct ScriptedUpload: Sendable {
    /// The number of the upload, from 1.
    let number: Int
    /// The path of the upload resource, which cannot be guessed.
    var path: String
    var offset: Int64 = 0
    var isComplete = false
    var length: Int64?
    var isGone = false
    /// Whether all received bytes equal those of the file.
    var isIntact = true
    /// The version in which the upload was created.
    let profile: Profile
}
