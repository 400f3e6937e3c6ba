import Foundation

/// What keeps resume data from being used by two transfers at once, and after it was superseded: a file in the storage
/// directory, one for each transfer through all its resumptions.
///
/// A transfer locks the file from its resumption, a new upload from its first checkpoint, until it ends. The content is the lowest
/// generation that is still good, as a decimal number; generations below it were superseded by one that has been used. The
/// file is removed when there is nothing left to resume. A process that is killed just before it hands out the first
/// checkpoint leaves it.
struct ResumeTicket: Sendable, Hashable, Codable {
    /// Of the transfer, through all its resumptions.
    var id: UUID
    /// Counts the data issued for it.
    var generation: Int

    var fileName: String { "\(id.uuidString).ticket" }
}
