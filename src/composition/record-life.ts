import type { Foundation } from './foundation.ts';

/** Records in the audit log that this instance has started; that it stops, when it is disposed of. */
export async function recordLife({
  audit,
  instance,
  version,
}: Pick<Foundation, 'audit' | 'instance' | 'version'>): Promise<AsyncDisposable> {
  const target = { kind: 'hub', name: instance.name } as const;
  await audit.recordAlone({ action: 'hub.start', target, detail: { version } });
  return {
    [Symbol.asyncDispose]: () => audit.recordAlone({ action: 'hub.stop', target }),
  };
}
