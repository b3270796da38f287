import { z } from 'zod';
import { readPhrase, savePhrase } from '../../platform/texts/text.ts';
import { type ServiceStatus, serviceStates } from './service-status.ts';

const optional = <Schema extends z.ZodType>(schema: Schema) => schema.optional();

/** What the owner of a service tells the other instances; the last lines of its output stay with it. */
const report = z.object({
  state: z.enum(serviceStates),
  isReady: z.boolean(),
  since: optional(z.coerce.date()),
  pid: optional(z.number()),
  startedAt: optional(z.coerce.date()),
  nextStartAt: optional(z.coerce.date()),
  restarts: z.number(),
  lastExit: optional(
    z.object({
      code: z.number().nullable(),
      signal: z.string().nullable(),
      leftBehind: z.number(),
      ranForMs: z.number(),
      at: z.coerce.date(),
    }),
  ),
  lastError: optional(z.unknown()),
  usage: optional(
    z.object({
      cpuCores: z.number(),
      memoryBytes: z.number(),
      uptimeSeconds: z.number(),
      processes: z.number(),
    }),
  ),
});

export type ServiceReport = Omit<z.infer<typeof report>, 'lastError'> &
  Partial<Pick<ServiceStatus, 'lastError'>>;

export function writeReport(status: ServiceStatus): string {
  const { lastError } = status;
  const saved = lastError === undefined ? undefined : savePhrase(lastError);
  return JSON.stringify(report.parse({ ...status, lastError: saved }));
}

/** Undefined for what another version wrote and this one cannot read. */
export function readReport(text: string | undefined): ServiceReport | undefined {
  if (text === undefined) return undefined;
  try {
    const { lastError, ...rest } = report.parse(JSON.parse(text));
    return { ...rest, lastError: lastError === undefined ? undefined : readPhrase(lastError) };
  } catch {
    return undefined;
  }
}

/** What of a report changes by itself all the time. */
export function withoutUsage(text: string): string {
  return JSON.stringify({ ...JSON.parse(text), usage: undefined });
}
