import { z } from 'zod';
import { httpUrl, secretReference } from './common-schema.ts';

/** `Hub.tracing`. */
export const tracingSection = z
  .strictObject({
    endpoint: httpUrl.describe(
      'Where a collector takes traces by OTLP over HTTP, such as http://127.0.0.1:4318/v1/traces.',
    ),
    headers: z
      .record(z.string().regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/), secretReference)
      .default({})
      .describe('Headers for the collector, such as an Authorization.'),
    sample_ratio: z
      .number()
      .min(0)
      .max(1)
      .default(0.01)
      .describe('Which part of all traces is recorded; 1 is all of them.'),
    trust_parent: z
      .boolean()
      .default(false)
      .describe(
        'Whether a request that belongs to a trace is recorded if its sender says so, in place of sample_ratio. Only where a reverse proxy removes or sets the header traceparent: otherwise visitors decide.',
      ),
    service_name: z.string().min(1).default('hub').describe('What the hub is called in traces.'),
  })
  .describe(
    'Traces of requests for an OpenTelemetry collector. Without it there are none, and apps see the trace headers of visitors as they came.',
  );
