import { z } from 'zod';
import { httpUrl, secretReference } from './common-schema.ts';

/** `Hub.tracing`. */
export const tracingSection = z
  .strictObject({
    endpoint: httpUrl.describe(
      "The collector's OTLP/HTTP endpoint, such as http://127.0.0.1:4318/v1/traces.",
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
      .describe('Share of traces that are recorded; 1 is all of them.'),
    trust_parent: z
      .boolean()
      .default(false)
      .describe(
        'Whether the sampling decision of an incoming traceparent header overrides sample_ratio. Only behind a reverse proxy that removes or sets that header: otherwise visitors decide.',
      ),
    service_name: z.string().min(1).default('hub').describe('Service name in traces.'),
  })
  .describe(
    "Sends request traces to an OpenTelemetry collector. Without it nothing is traced, and visitors' trace headers reach apps unchanged.",
  );
