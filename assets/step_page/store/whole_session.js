/** A frame leaves out of a session what the page has of it already. */

/** A session as it is now: what the frame left out of it, prompt and earlier choices, this tab has already. */
export function wholeSession(session, held) {
  const { chosen_from: from, ...recipe } = session.recipe ?? {};
  if (from === undefined) return session;
  if (!held?.recipe?.prompt_ids) return { ...session, recipe: undefined }; // not this tab's: it will ask for everything
  const { prompt, prompt_ids, roles, chosen_ids } = held.recipe;
  recipe.chosen_ids = [...chosen_ids.slice(0, from), ...recipe.chosen_ids];
  return { ...session, prompt: held.prompt, recipe: { ...recipe, prompt, prompt_ids, roles } };
}
