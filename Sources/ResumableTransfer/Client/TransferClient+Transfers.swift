extension TransferClient {
    /// The transfers that have started and not ended, in the order in which they were started. Those with
    /// ``TransferProgress/isWaiting`` wait for their turn or for their next attempt.
    public var transfers: [any Transfer] { registered }

    /// A new stream of the events of all transfers of this client. It ends when the client is shut down.
    ///
    /// It begins with the next event, and starts no transfer. At most 1024 events wait for a reader. Of the `progress`,
    /// `received` and `checkpoint` events of a transfer only the latest one waits. If there would be more than 1024
    /// events, the oldest event that is not the last event of its transfer is dropped, or the oldest event if all are
    /// last events.
    public func events() -> AsyncStream<(transfer: any Transfer, event: TransferEvent)> { clientEvents.stream() }
}
