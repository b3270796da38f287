import type { Page } from 'playwright-core';
import { createPageUrls } from '../../src/entrances/pages/page-urls.ts';
import type { Camera } from './camera.ts';
import type { PictureName } from './list.ts';
import { password, type World } from './world.ts';

/** What is taken only in part stops after the last picture that is wanted. */
export async function playScenes(
  world: World,
  camera: Camera,
  options: { readonly last?: PictureName; readonly visitSeconds: number },
): Promise<void> {
  let isOver = false;
  const take = async (page: Page, name: PictureName) => {
    await camera.take(page, name);
    isOver = name === options.last;
  };
  const urls = createPageUrls(new URL(world.url).pathname);
  const open = (page: Page, path: string) => page.goto(new URL(path, world.url).href);
  const submit = (page: Page) => page.locator('button.primary').first().click();

  // The first administrator, from the first page to the own server.
  const ada = await camera.openPage();
  await ada.goto(world.setUpUrl);
  await ada.locator('input[name=name]').fill('ada');
  await take(ada, 'set-up');
  if (isOver) return;
  for (const field of await ada.locator('input[type=password]').all()) await field.fill(password);
  await submit(ada);
  await ada.waitForURL('**/hub/home');
  await take(ada, 'first-home');
  if (isOver) return;
  await open(ada, urls.spawn('ada'));
  await ada.locator('input[value=course]').check();
  await take(ada, 'options');
  await submit(ada);
  await ada.getByText('Fetching part 4 of 5').waitFor();
  await take(ada, 'progress');
  if (isOver) return;
  await ada.waitForURL('**/user/ada/**');
  await take(ada, 'own-server');
  if (isOver) return;

  await world.populate();
  await world.visit(options.visitSeconds);

  const grace = await camera.openPage();
  await open(grace, urls.login);
  await grace.locator('input[name=username]').fill('grace');
  await take(grace, 'login');
  if (isOver) return;
  await logIn(grace, 'grace');
  await open(grace, urls.home);
  await take(grace, 'home');
  await take(grace, 'home-phone');
  await open(grace, '/services/whoami/');
  await take(grace, 'consent');
  await open(grace, urls.tokens);
  await take(grace, 'tokens');
  await open(grace, urls.share('grace'));
  await take(grace, 'share');

  // A start that fails, and the way out.
  const linus = await camera.openPage();
  await open(linus, urls.login);
  await logIn(linus, 'linus');
  await open(linus, urls.spawn('linus'));
  await linus.locator('input[value=gpu]').check();
  await submit(linus);
  await linus.getByText('driver 535').first().waitFor();
  await open(linus, urls.home);
  await take(linus, 'failed-home');
  await open(linus, urls.server('linus'));
  await take(linus, 'failed-server');
  await open(linus, urls.spawn('linus'));
  await linus.locator('input[value=workspace]').check();
  await take(linus, 'fixed-options');
  await submit(linus);
  await linus.waitForURL('**/user/linus/**');
  await world.visit(6);
  await open(linus, urls.server('linus'));
  await take(linus, 'fixed-server');

  for (const [name, path] of [
    ['server', urls.server('grace')],
    ['users', urls.adminUsers],
    ['user', urls.adminUser('grace')],
    ['services', urls.adminServices],
    ['service', urls.adminService('nightly-report')],
    ['activity', urls.adminActivity],
  ] as const satisfies readonly (readonly [PictureName, string])[]) {
    await open(ada, path);
    await take(ada, name);
  }
}

async function logIn(page: Page, name: string): Promise<void> {
  await page.locator('input[name=username]').fill(name);
  await page.locator('input[type=password]').fill(password);
  await page.locator('button.primary').first().click();
  await page.waitForURL((address) => !address.pathname.startsWith('/hub/login'));
}
