/** Does work for each item, for at most `limit` at once. Rejects with the first that fails. */
export async function forEachAtOnce<Item>(
  limit: number,
  items: Iterable<Item>,
  work: (item: Item) => Promise<unknown>,
): Promise<void> {
  const queue = [...items].values();
  const worker = async (): Promise<void> => {
    for (const item of queue) await work(item);
  };
  await Promise.all(Array.from({ length: limit }, worker));
}
