import { z } from 'zod';

const price = z.number().nonnegative();

const profilePrices = z.strictObject({
  cpu_hour: price.optional().describe('Of a core in use for an hour.'),
  gib_hour: price.optional().describe('Of a GiB of memory for an hour.'),
  gpu_hour: price.optional().describe('Of a GPU that a server has for an hour.'),
  server_hour: price.optional().describe('Of an hour of a server, whatever it does.'),
});

/** What use costs with a profile. */
export const profilePricesSchema = profilePrices
  .optional()
  .describe('In place of those of Spawner.prices.');

const { cpu_hour, gib_hour, gpu_hour, server_hour } = profilePrices.shape;

/** What use costs. */
export const pricesSchema = z
  .strictObject({
    cpu_hour: cpu_hour.unwrap().default(0),
    gib_hour: gib_hour.unwrap().default(0),
    gpu_hour: gpu_hour.unwrap().default(0),
    server_hour: server_hour.unwrap().default(0),
    currency: z.string().max(12).default('').describe('Written behind sums, such as `€`.'),
  })
  .prefault({})
  .describe('Prices of use. What was used before a change keeps the price of its time.');
