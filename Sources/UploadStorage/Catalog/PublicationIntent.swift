import HTTPSemantics
import ResumableUpload

/// A publication that has been decided: recovery carries it out, or answers `refused`, but never asks again.
package struct PublicationIntent: Sendable, Hashable {
    package var name: PublishedName
    /// The opaque tag of the file that had this name at the decision; nil: there was none, and none may be replaced.
    package var replaced: String?
    /// Identity of the bytes, which they keep under their new name.
    package var identity: String
    /// Representation metadata, to be served with the file.
    package var fields: Fields = [:]
    package var response: Response
    package var refused: Response

    /// Whether this file is the one that was evaluated.
    ///
    /// - Parameter mayHaveMoved: whether it may have had another name since: that changes the last two parts of the tag, the time of
    ///   the last change of attributes.
    func replaces(_ file: PublishedFile.Attributes, mayHaveMoved: Bool) -> Bool {
        guard mayHaveMoved, let replaced else { return file.entityTag.opaque == replaced }
        return file.entityTag.opaque.split(separator: "-").dropLast(2) == replaced.split(separator: "-").dropLast(2)
    }
}
