import type { Foundation } from './foundation.ts';

/** Records in the audit log that this instance has started; that it stops, when it is disposed of. */
export async function recordLife(
  { database, instance }: Pick<Foundation, 'database' | 'instance'>,
  version: string,
): Promise<AsyncDisposable> {
  const target = { kind: 'hub', name: instance.name } as const;
  await database.audit.recordAlone({ action: 'hub.start', target, detail: { version } });
  return {
    [Symbol.asyncDispose]: () => database.audit.recordAlone({ action: 'hub.stop', target }),
  };
}
