import Foundation

/// What lets resume data be used once: the name of an empty file in the storage directory, which its use removes.
struct ResumeTicket: Sendable, Hashable, Codable {
    /// Of the transfer, through all its resumptions.
    var id: UUID
    /// Counts the data issued for it.
    var generation: Int

    var fileName: String { "\(id.uuidString).\(generation).ticket" }
}
