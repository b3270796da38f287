import { z } from 'zod';
import type { AuditTrail } from '../platform/store/audit-trail.ts';
import { operation } from './operation.ts';

/** What a stop that was asked for over the API does beside stopping the hub. */
export interface StopRequest {
  /** Whether users' servers stop too; `Hub.cleanup_servers` decides when undefined. */
  readonly servers: boolean | undefined;
}

export interface Deps {
  readonly requestStop: (request: StopRequest) => void;
  readonly audit: Pick<AuditTrail, 'recordAlone'>;
}

/** Stops the hub. */
export const shutdownOperations = [
  operation({
    id: 'shutDown',
    method: 'POST',
    path: '/shutdown',
    audit: ['hub.shut_down'],
    tag: 'hub',
    summary: 'Stop the hub as SIGTERM does',
    scopes: ['shutdown'],
    body: z
      .strictObject({
        servers: z
          .boolean()
          .optional()
          .describe("Whether users' servers stop too; `Hub.cleanup_servers` unless given."),
        proxy: z
          .boolean()
          .optional()
          .describe('Accepted from clients of hubs with a proxy of their own; no effect.'),
      })
      .prefault({}),
    answers: {
      202: { description: 'The hub is stopping.', schema: z.object({ message: z.string() }) },
    },
  }).handle(async ({ body }, { requestStop, audit }: Deps) => {
    const { servers } = body;
    const detail = servers === undefined ? {} : { servers };
    await audit.recordAlone({ action: 'hub.shut_down', detail });
    return {
      status: 202,
      body: { message: 'Shutting down Hub' },
      onSent: () => requestStop({ servers }),
    };
  }),
];
