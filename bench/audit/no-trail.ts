import type { Compilable, Kysely } from 'kysely';
import type { AuditTrail } from '../../src/store/audit-trail.ts';
import type { Tables } from '../../src/store/tables.ts';

/** Stands for `createAuditTrail`, and records nothing. */
export function createAuditTrail({ kysely }: { readonly kysely: Kysely<Tables> }): AuditTrail {
  return {
    async record() {},
    async recordNewUsers<Row extends { readonly id: string; readonly name: string }>(
      change: Compilable<Row>,
    ) {
      const { rows } = await kysely.executeQuery<Row>(change.compile());
      return rows;
    },
    async recordAlone() {},
    recordBounded() {},
    onRecord() {},
    async catchUp() {},
    async flush() {},
  };
}
