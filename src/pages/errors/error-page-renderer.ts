import type { RenderErrorPage } from '../../http/error-answers.ts';
import type { LayoutProps } from '../elements/layout-props.ts';
import { renderHtml } from '../html.ts';
import { errorPage } from './error-page.ts';

/** Renders error pages without knowing a request: for every place that must answer a failure. */
export function createErrorPageRenderer(layout: Omit<LayoutProps, 'now'>): RenderErrorPage {
  return (error, requestId) =>
    renderHtml(
      errorPage({
        layout: { ...layout, now: new Date(), requestId },
        status: error.status,
        message: error.message,
        hint: error.hint,
        retryAfterSeconds: error.retryAfterSeconds,
        errorId: error.errorId,
      }),
    );
}
