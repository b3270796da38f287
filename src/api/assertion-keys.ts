import type Router from '@koa/router';
import type { AssertionSigner } from '../gateway/assertion.ts';

/** `GET /assertion-keys`: the public keys (RFC 7517) with which upstreams verify `X-Hub-Assertion`. */
export function assertionKeyRoutes(router: Router, assertions: AssertionSigner): void {
  router.get('/assertion-keys', async (ctx) => {
    ctx.set('Cache-Control', 'public, max-age=300');
    ctx.body = await assertions.keySet();
  });
}
