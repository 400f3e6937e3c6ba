import Foundation

/// What keeps resume data from being used by two transfers at once, and after it was superseded: a file in the storage
/// directory, one for each transfer through all its resumptions.
///
/// A transfer locks the file while it runs. The content is the lowest generation that is still good, as a decimal number;
/// generations below it were superseded by one that has been used. The file is removed when there is nothing left to
/// resume.
struct ResumeTicket: Sendable, Hashable, Codable {
    /// Of the transfer, through all its resumptions.
    var id: UUID
    /// Counts the data issued for it.
    var generation: Int

    var fileName: String { "\(id.uuidString).ticket" }
}
