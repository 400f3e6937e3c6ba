extension TransferClient {
    /// The transfers that have started and not ended, in the order in which they were started. Those with
    /// ``TransferProgress/isWaiting`` wait for their turn or for their next attempt.
    public var transfers: [any Transfer] { registered }

    /// A new stream of the events of all transfers of this client. It ends when the client is shut down.
    ///
    /// The stream begins with the next event. This function starts no transfer.
    ///
    /// At most 1024 events wait for the reader. A `progress`, `received` or `checkpoint` event replaces the previous
    /// one of the same transfer if that one still waits. If 1024 events wait, the next event replaces the oldest one,
    /// but the last event of a transfer is replaced only if all events that wait are last events.
    public func events() -> AsyncStream<(transfer: any Transfer, event: TransferEvent)> { clientEvents.stream() }
}
