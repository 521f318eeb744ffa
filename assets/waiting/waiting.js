/**
 * Says which session this tab had, if any: a reload in a full class goes back to its own place.
 * The key is the one under which tab_memory.js keeps it.
 */
export default function waiting({ setStateValue }) {
  try {
    const { sid } = JSON.parse(sessionStorage.getItem('loupe.session')) ?? {};
    if (typeof sid === 'string') setTimeout(() => setStateValue('sid', sid)); // not during the component's own call
  } catch {
    // storage switched off, or not ours
  }
}
