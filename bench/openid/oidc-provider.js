/**
 * oidc-provider with its memory store, as a contender: `node oidc-provider.js PORT`, with its clients as JSON in the
 * variable CLIENTS. `GET /codes/CLIENT/COUNT` makes so many authorization codes of its first user.
 */
import { exportJWK, generateKeyPair } from 'jose';
import Provider from 'oidc-provider';

const [port = ''] = process.argv.slice(2);
const algorithms = ['RS256', 'ES256'];
const keys = await Promise.all(
  algorithms.map(async (alg) => {
    const { privateKey } = await generateKeyPair(alg, { extractable: true });
    return { ...(await exportJWK(privateKey)), kid: alg, use: 'sig', alg };
  }),
);
const provider = new Provider(`http://127.0.0.1:${port}`, {
  clients: JSON.parse(process.env['CLIENTS'] ?? '[]'),
  jwks: { keys },
  cookies: { keys: ['only for measurements'] },
  pkce: { required: () => false },
  enabledJWA: { idTokenSigningAlgValues: algorithms },
  findAccount: (_ctx, accountId) => ({
    accountId,
    claims: () => ({ sub: accountId }),
  }),
});

const accountId = 'ada';
provider.use(async (ctx, next) => {
  const [, codes, clientId = '', count] = ctx.path.split('/');
  if (codes !== 'codes') return void (await next());
  const client = await provider.Client.find(clientId);
  const made = [];
  for (let at = 0; at < Number(count); at += 1) {
    const grant = new provider.Grant({ accountId, clientId });
    grant.addOIDCScope('openid');
    const grantId = await grant.save(600);
    const redirectUri = client?.redirectUris?.[0];
    const authTime = Math.floor(Date.now() / 1000);
    const code = { accountId, client, grantId, redirectUri, authTime, scope: 'openid', gty: 'authorization_code' };
    made.push(await new provider.AuthorizationCode(code).save());
  }
  ctx.body = made;
});
provider.on('server_error', (_ctx, error) => process.stderr.write(`${String(error)}\n`));
provider.listen(Number(port), '127.0.0.1');
